"""Ray: a cluster of two nodes gives the bits of one thread, loses nothing, and leaves nothing."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import re
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tests.estimator_cases import adaptive, assert_same_tree, problem, quick, untimed
from tests.execution import tasks
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    MACHClassifier,
    OneVsAllClassifier,
    SoftmaxForestClassifier,
)
from thinleaf.execution import Ray, RayExecutor, SerialExecutor, Shared, executor_for

ray: Any = pytest.importorskip("ray", reason="needs the extra ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a head and a second node, each with a worker, and connect to them."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    memory = {"object_store_memory": 2**27}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1} | memory)
    try:
        cluster.add_node(num_cpus=1, **memory)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture
def executor(cluster: Any) -> Iterator[RayExecutor]:
    with executor_for(None, "ray") as found:
        assert isinstance(found, RayExecutor)
        yield found


def in_store() -> float:
    """Return the bytes in all object stores, as far as the nodes have told."""
    name = "object_store_memory"
    return float(ray.cluster_resources()[name] - ray.available_resources().get(name, 0.0))


def references() -> int:
    gc.collect()
    return len(ray._private.worker.global_worker.core_worker.get_all_reference_counts())


def soon(condition: Any, seconds: float = 20.0) -> bool:
    """Return whether something becomes true."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


# -- the same bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("make", [quick, adaptive], ids=["fixed", "adaptive"])
def test_a_tree_is_that_of_one_thread(make, kind, cluster):
    X, y = problem(3, kind=kind, n_rows=300)
    one = make(overlap=0.05).fit(X, y)
    with executor_for(None, "ray") as executor:
        assert executor.n_workers == 2
        far = make(overlap=0.05, executor=executor).fit(X, y)
    assert_same_tree(far.tree_, one.tree_)
    assert untimed(far.history_) == untimed(one.history_)
    assert any(traffic.function == "fit_node" for traffic in executor.traffic)
    if make is adaptive:
        assert any(traffic.function == "_attempt" for traffic in executor.traffic)
    assert far.tree_.block_val.flags.writeable


def test_what_held_out_rows_decide_is_the_same(cluster):
    X, y = problem(6, kind="sparse", n_rows=500, n_classes=8)
    one = AdaptiveSoftmaxTreeClassifier(max_rounds=1, initial_depth=2, random_state=0).fit(X, y)
    with executor_for(None, "ray") as executor:
        far = clone(one).set_params(executor=executor).fit(X, y)
    assert_same_tree(far.tree_, one.tree_)
    assert untimed(far.history_) == untimed(one.history_)
    assert {"fit_node", "_score_leaf"} <= {traffic.function for traffic in executor.traffic}


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_forests_and_baselines_are_those_of_one_thread(n_jobs, cluster):
    X, y = problem(4, n_rows=200)
    for clf in (
        SoftmaxForestClassifier(quick(), 4, random_state=0),
        OneVsAllClassifier(),
        MACHClassifier(4, 3, random_state=0),
    ):
        one = clf.fit(X, y).predict_proba(X)
        far = clf.set_params(executor="ray", n_jobs=n_jobs).fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(far, one)


# -- what travels ----------------------------------------------------------------------------------


def test_a_value_is_sent_once_and_forgotten_when_it_is_gone(executor):
    data = np.arange(300_000.0)
    first = executor.share(data)
    assert executor.map(tasks.scaled, [1, 2, 3], shared=[first]) == [
        data.sum() * i for i in (1, 2, 3)
    ]
    executor.map(tasks.scaled, [1, 2], shared=[executor.share(data)])
    sizes = [traffic.shared_bytes for traffic in executor.traffic]
    assert data.nbytes <= sizes[0] < data.nbytes + 1000
    assert sizes[1] == 0
    del data, first
    assert soon(lambda: references() == 0)


def test_only_changes_are_sent(executor):
    table = {i: f"name {i}" for i in range(5000)}
    handle = executor.share(table)
    executor.map(tasks.looked_up, [0, 1], shared=[handle])
    for word in ("new", "newer"):
        table = table | {1: word}
        handle = handle.changed(table, tasks.with_changes, {1: word})
        assert executor.map(tasks.looked_up, [0, 1], shared=[handle]) == ["name 0", word]
    sizes = [traffic.shared_bytes for traffic in executor.traffic]
    assert sizes[0] > 50_000
    assert max(sizes[1:]) < 500
    # changes that are larger than the value take its place
    other = {i: f"other {i}" for i in range(9000)}
    handle = handle.changed(other, tasks.with_changes, other)
    assert executor.map(tasks.looked_up, [0, 8], shared=[handle]) == ["other 0", "other 8"]
    assert len(handle.sent.objects) == 1


def test_arrays_count_as_writable_where_they_are_read(executor):
    """To a kernel, a read-only array is another signature."""
    items = [np.arange(2000.0), np.arange(3)]
    for item in items:
        item.flags.writeable = False
    shared = Shared(np.ones(100_000))
    found = executor.map(tasks.is_writable, items, shared=[shared])
    assert all(first and second for first, second, _ in found)
    assert all(pid != os.getpid() for *_, pid in found)


def test_nothing_stays_in_the_object_store(cluster):
    assert soon(lambda: in_store() == 0.0)
    X, y = problem(5, n_rows=5000, n_features=40)
    with executor_for(2, "ray") as executor:
        clf = quick(executor=executor).fit(X, y)
        sent = sum(traffic.shared_bytes for traffic in executor.traffic)
    assert sent > X.nbytes / 2
    del clf, executor
    assert soon(lambda: references() == 0)
    assert soon(lambda: in_store() == 0.0)


def test_the_code_of_the_page_runs(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for block in re.findall(r"^ *```python\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL):
        exec(textwrap.dedent(block), names)
    assert (tmp_path / "model.thinleaf").exists()
    assert names["n_bytes"] > 0


def test_the_code_of_the_quickstart_runs(cluster):
    page = Path(__file__).parents[2] / "docs" / "quickstart" / "cluster.md"
    text = page.read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(block, {})


# -- what goes wrong -------------------------------------------------------------------------------


def test_an_error_comes_back_as_it_is(executor):
    with pytest.raises(ArithmeticError) as caught:
        executor.map(tasks.fails_at_two, [1, 2, 3])
    assert str(caught.value) == "two"
    assert "in fails_at_two" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="OddError: odd at 7"):
        executor.map(tasks.fails_oddly, [7, 8])
    assert executor.map(tasks.triple, [1, 2]) == [3, 6]


def test_a_worker_that_is_killed_costs_its_tasks_alone(executor, tmp_path):
    items = [(str(tmp_path / "died"), i) for i in range(6)]
    assert executor.map(tasks.dies_once, items) == list(range(6))
    assert (tmp_path / "died").exists()


def test_a_task_that_kills_its_workers_is_an_error(cluster):
    with Ray(retries=1).open(2) as executor, pytest.raises(ChildProcessError, match="memory"):
        executor.map(tasks.always_dies, [1, 2])


def test_ctrl_c_ends_at_once(executor):
    began = time.monotonic()
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        executor.map(tasks.waits, [20.0] * 4)
    assert time.monotonic() - began < 10.0
    assert executor.map(tasks.triple, [1, 2]) == [3, 6]  # others have their workers again


def test_once_time_is_up_nothing_begins(executor):
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 1

    found = executor.map(tasks.triple, list(range(100)), stop=stop)
    assert 0 < sum(value is not None for value in found) < 100
    assert all(value in (None, 3 * i) for i, value in enumerate(found))


def test_other_versions_are_refused(executor, monkeypatch):
    monkeypatch.setattr("thinleaf.execution.ray_cluster.__version__", "0.0.0")
    with pytest.raises(RuntimeError, match=r"thinleaf 0\.0\.0.*install the same version"):
        executor.map(tasks.triple, [1, 2])


def test_an_open_executor_is_copied_with_estimators_but_stays_here(executor):
    assert copy.deepcopy(quick(executor=executor)).executor is executor
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(quick(executor=executor))


def test_a_single_item_runs_here(executor):
    assert executor.map(lambda item: os.getpid() * item, [1]) == [os.getpid()]
    assert executor.map(tasks.triple, []) == []
    assert isinstance(executor.local, SerialExecutor) or executor.local.n_workers == 2


def test_a_connection_that_was_open_stays_open(cluster):
    with Ray().open(None):
        pass
    assert ray.is_initialized()


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    X, y = problem(0)
    with pytest.raises(ModuleNotFoundError, match=r"thinleaf\[ray\]"):
        quick(executor="ray").fit(X, y)
