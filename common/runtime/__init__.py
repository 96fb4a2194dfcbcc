"""What every process needs: lifecycle, logs, metrics, random numbers, facts about the machine."""
