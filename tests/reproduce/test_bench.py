"""``awatt bench``: parts that run in a process of their own."""

from awatt.reproduce import bench


def test_a_part_in_a_process_of_its_own_is_not_a_failed_import() -> None:
    assert bench._result(bench._start("GROWTH")).keys() == bench.GROWTH.keys()
