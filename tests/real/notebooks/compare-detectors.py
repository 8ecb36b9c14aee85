# ruff: noqa: F821 -- the names are the notebook's.
found = {one.name: one for one in comparison.detectors}
assert found.keys() == {*names}, found
assert (comparison.answers, comparison.hallucinated, comparison.groups) == (12, 6, 3), comparison
assert all(name in run.stdout.replace("\\", "") for name in names), run.stdout

checked = found["refchecker-sentences-adapter"]
assert checked.scored == 12, checked
assert checked.quality.auroc.value >= 0.7, checked  # A small model may get a few of twelve wrong.
assert found["all-false"].quality.auroc.value == 0.5
assert found["floor-contexts"].cost["calls"] == 0
assert checked.cost["calls"] >= 1, checked
assert found["refchecker-small"].cost["calls"] == 0
assert found["refchecker-small"].quality.auroc.value >= 0.6, found["refchecker-small"]
