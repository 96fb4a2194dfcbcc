import random
from collections import Counter, defaultdict

from simul.env_worker.games.pokemon.formats.team_pool import WIDTH, TeamPool

BATTLES = 4 * WIDTH


def drawn(uses: int, worker: str = "1/0") -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    pool, rng = TeamPool(worker, uses), random.Random(3)
    return [tuple(map(tuple, pool.seeds(battle, rng))) for battle in range(BATTLES)]


def test_a_team_plays_so_many_battles_and_then_no_more():
    battles = drawn(uses=4)
    when = defaultdict(list)
    for number, teams in enumerate(battles):
        for team in teams:
            when[team].append(number)
    settled = [numbers for numbers in when.values() if WIDTH < numbers[0] < BATTLES - 2 * WIDTH]
    assert 3.5 < sum(map(len, settled)) / len(settled) < 4.6  # those that never played are not among them
    assert all(numbers[-1] - numbers[0] <= 2 * WIDTH for numbers in settled)


def test_no_team_plays_itself_and_pairs_hardly_ever_repeat():
    battles = drawn(uses=4)
    assert all(first != second for first, second in battles)
    pairs = Counter(frozenset(pair) for pair in battles)
    assert sum(count - 1 for count in pairs.values()) < BATTLES / 20


def test_seeds_follow_from_the_workers_seed_and_are_its_own():
    assert drawn(uses=4) == drawn(uses=4)
    teams = {team for battle in drawn(uses=4) for team in battle}
    others = {team for battle in drawn(uses=4, worker="1/1") for team in battle}
    assert not teams & others
    assert all(len(team) == 4 and all(0 <= part < 1 << 16 for part in team) for team in teams)
