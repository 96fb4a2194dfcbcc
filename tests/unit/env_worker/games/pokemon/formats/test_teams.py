"""Team files, and what is said of formats and teams that cannot be played."""

import os
import random
from collections import Counter, defaultdict

import pytest

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.formats.teams import WIDTH, TeamPool, TeamText, legal_teams, read_teams

ONE = "Great Tusk @ Leftovers\n- Earthquake"
PACKED = "|greattusk|leftovers||earthquake||||||"


class Answering:
    """A host that answers what the test says."""

    def __init__(self, **answer):
        self.answer = {"problem": "", "doubles": False, "formats": [], "teams": [], "illegal": []} | answer

    def check_format(self, battle_format, teams):
        return {"id": battle_format.partition("@@@")[0]} | self.answer


def test_a_file_holds_one_team_or_a_backup_of_many(tmp_path):
    single, backup = tmp_path / "a.txt", tmp_path / "b.txt"
    single.write_text(ONE)
    backup.write_text(f"=== [gen9ou] first ===\n\n{ONE}\n\n=== [gen9ou] second ===\n\n{ONE}\n")
    assert read_teams(str(single)) == [TeamText(str(single), ONE)]
    assert [team.source for team in read_teams(str(tmp_path))] == [
        str(single),
        f"{backup}, team 1",
        f"{backup}, team 2",
    ]
    assert {team.text for team in read_teams(str(tmp_path))} == {ONE}
    assert read_teams("") == []


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere cannot be read: No such file"):
        read_teams(str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="there is no team in"):
        read_teams(str(tmp_path))
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_teams(str(tmp_path))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(ConfigError, match="not a regular file"):
            read_teams(str(tmp_path / "fifo"))


def test_an_unknown_format_names_the_nearest():
    host = Answering(problem="unknown", formats=["gen9ou", "gen8ou", "gen9randombattle"])
    with pytest.raises(ConfigError, match=r"no format 'gen9oo'; did you mean gen9ou"):
        legal_teams(host, "gen9oo", [])
    host = Answering(problem="unknown", formats=["gen9ou", "gen9uu", "gen9ru", "gen9zu"])
    with pytest.raises(ConfigError, match=r"did you mean gen9ou or gen9uu or gen9ru\?"):
        legal_teams(host, "gen9u", [])
    with pytest.raises(ConfigError, match="try gen9randombattle"):
        legal_teams(host, "zzz", [])


def test_another_spelling_than_the_simulators_is_refused():
    """Sets, doubles and the spec's name follow from the spelling."""
    with pytest.raises(ConfigError, match="spells 'gen9RandomDoublesBattle' 'gen9randomdoublesbattle'; write it so"):
        legal_teams(Answering(id="gen9randomdoublesbattle", doubles=True), "gen9RandomDoublesBattle", [])
    with pytest.raises(ConfigError, match="'gen9OU@@@Inverse Mod' 'gen9ou@@@Inverse Mod'"):
        legal_teams(Answering(id="gen9ou"), "gen9OU@@@Inverse Mod", [])


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("players", "two players"),
        ("kind", "neither in singles nor"),
        ("species", "species of its own"),
        ("size", "teams of more than six"),
        ("teams", "pokemon.teams"),
        ("draws", "no effect"),
    ],
)
def test_formats_that_cannot_be_played(problem, words):
    with pytest.raises(ConfigError, match=words):
        legal_teams(Answering(problem=problem), "x", [])


def test_doubles_must_show_in_the_name():
    """The spec is made from the name alone, before any simulator runs."""
    assert legal_teams(Answering(doubles=True), "gen9randomdoublesbattle", []) == []
    with pytest.raises(ConfigError, match="its name does not say"):
        legal_teams(Answering(doubles=True), "gen9metronomebattle", [])


def test_illegal_teams_are_named_with_the_validators_words():
    teams = [TeamText(f"file{i}", ONE) for i in range(5)]
    host = Answering(illegal=[[i, ["it can't learn Surf.", "no."]] for i in range(1, 5)])
    with pytest.raises(ConfigError) as caught:
        legal_teams(host, "gen9ou", teams)
    assert str(caught.value).split("\n  ") == [
        "pokemon.teams: not legal in gen9ou:",
        "file1: it can't learn Surf.", "file1: no.", "file2: it can't learn Surf.", "and 5 more",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"gen9ou:\n  file0: no.$"):
        legal_teams(Answering(illegal=[[0, ["no."]]]), "gen9ou", teams)
    assert legal_teams(Answering(teams=[PACKED]), "gen9ou", teams) == [PACKED]


def test_a_species_of_another_generation_is_refused():
    """Custom games allow it, and no observation could describe it."""
    packed = f"{PACKED}]Rex|enamorus|||splash||||||"
    team = TeamText("my.txt", ONE)
    assert legal_teams(Answering(teams=[packed]), "gen9customgame", [team]) == [packed]
    with pytest.raises(
        ConfigError, match=r"gen8customgame:\n  my.txt: greattusk does not exist in generation 8.\n  my"
    ):
        legal_teams(Answering(teams=[packed]), "gen8customgame", [team])


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


def test_species_are_those_that_the_generation_has():
    fancy, later = (f"|{name}|||hurricane||||||" for name in ("vivillonfancy", "greattusk"))
    assert legal_teams(Answering(teams=[fancy]), "gen6customgame", [TeamText("file", ONE)]) == [fancy]
    with pytest.raises(ConfigError, match="file: greattusk does not exist in generation 6"):
        legal_teams(Answering(teams=[later]), "gen6customgame", [TeamText("file", ONE)])
