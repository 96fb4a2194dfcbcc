"""Names in a store, and which checkpoints stay there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simul.common.store.layout import KEEP_NEWEST, Entry, digest, entries, folder_of, kept, newest_first, whole


def entry(version: int, decisions: int = 0, kind: str = "checkpoints") -> Entry:
    return Entry(kind, version, decisions, digest(b"%d" % version))


def test_folders_are_read_from_the_names_of_files_and_foreign_files_are_left_alone():
    one, past = entry(420, 81920), entry(300, 65536, "past")
    names = [f"{one.path}/meta.json", f"{one.path}/weights.safetensors", f"{past.path}/weights.safetensors"]
    foreign = ["owner.json", "checkpoints/notes.txt", "checkpoints/000000420/meta.json", f"other/{one.path}/meta.json"]
    found = entries([*names, *foreign])
    assert found == {one: {"meta.json", "weights.safetensors"}, past: {"weights.safetensors"}}
    assert whole(found, "checkpoints") == [one]
    assert whole(found, "past") == [], "without meta.json it is not whole"


def test_of_one_version_the_one_that_learned_more_is_newer():
    assert newest_first([entry(5, 10), entry(7, 1), entry(5, 20)]) == [entry(7, 1), entry(5, 20), entry(5, 10)]


def test_the_newest_two_stay_and_the_first_past_each_multiple():
    checkpoints = [entry(n, 300 * n) for n in range(12)]  # 0, 300, ..., 3300
    assert sorted(each.version for each in kept(checkpoints, 1000)) == [4, 7, 10, 11]
    assert kept([], 1000) == set()
    assert kept([*checkpoints, *checkpoints], 1000) == kept(checkpoints, 1000), "here and there is still one checkpoint"


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10_000)), max_size=30))
def test_keeping_again_after_a_removal_keeps_the_same(found):
    checkpoints = {entry(version, decisions) for version, decisions in found}
    stay = kept(checkpoints, 1000)
    assert stay <= checkpoints
    assert kept(stay, 1000) == stay
    assert set(newest_first(checkpoints)[:KEEP_NEWEST]) <= stay
    assert {each.decisions // 1000 for each in checkpoints} - {0} <= {each.decisions // 1000 for each in stay}


def test_a_url_names_a_store_or_one_folder_of_it():
    one = entry(420, 81920, "best")
    assert folder_of(f"s3://bucket/run/{one.path}/") == ("s3://bucket/run", one)
    assert folder_of("s3://bucket/run") == ("s3://bucket/run", None)
    assert folder_of("s3://bucket") == ("s3://bucket", None)
