"""Node solvers against LIBLINEAR and SAGA, on problems taken from real sweeps.

Each problem is solved by the peer at a usual tolerance, then by ours, from zero and from the node's
previous parameters, to an objective at least as low. Routers have ℓ₁ only, which LIBLINEAR can do;
leaves have ℓ₁ and ridge, SAGA's elastic net. All on one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks import _peers
from benchmarks._data import available, load
from benchmarks._report import arguments, table, write
from thinleaf.arrays.rows import as_rows
from thinleaf.execution import executor_for
from thinleaf.measuring.latency import Stopwatch, best_of
from thinleaf.softmaxtree.growth.initial_tree import initial_tree
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import NodeProblem, Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic
from thinleaf.softmaxtree.tao import Settings, TrainingData, canonical, optimise

SETS = {
    "letter": (7, 7, "pca_median", Penalty(0.01, 5.0), Penalty(0.01, 0.1)),
    "fontglyph1000": (6, 60, "pca_median", Penalty(0.01, 50.0), Penalty(0.01, 1.0)),
    "icd10cm": (6, 80, "balanced_clusters", Penalty(0.001, 0.03), Penalty(0.001, 0.01)),
}
SWEEP = 2
"""The sweep whose problems are taken."""
PER_KIND = 4
"""Problems of each kind and set, evenly spaced by size, the largest among them."""


@dataclass(frozen=True)
class Case:
    """A node problem, with the parameters that a sweep would start from."""

    kind: str
    problem: NodeProblem
    warm: object


def problems_of(name: str, data) -> list[Case]:
    """Return problems that a sweep meets."""
    depth, k, init, router_penalty, leaf_penalty = SETS[name]
    classes, y = np.unique(data.y_train, return_inverse=True)
    train = canonical(
        TrainingData(as_rows(data.X_train), y.astype(np.int32), np.ones(y.size), classes.size)
    )
    start = initial_tree(train, depth, init, np.random.SeedSequence(0))
    seen: list[Case] = []
    sweeps_done = [0]

    def router(problem, warm, precision):
        if sweeps_done[0] == SWEEP - 1 and np.unique(problem.target).size == 2:
            l1_only = replace(problem, penalty=Penalty(_l1_like(router_penalty), 0.0))
            seen.append(Case("router", l1_only, warm))
        return solve_logistic(problem, warm, precision)

    def leaf(problem, warm, precision):
        if sweeps_done[0] == SWEEP - 1:
            seen.append(Case("leaf", problem, warm))
        return solve_softmax(problem, warm, precision)

    def progress(record):
        sweeps_done[0] = record.sweep

    settings = Settings(
        Objective("constant", 10.0, router_penalty, leaf_penalty),
        np.full(start.tree.n_nodes, k, dtype=np.int32),
        Precision(1e-3, 20),
        solve_router=router,
        solve_leaf=leaf,
    )
    with executor_for(1) as executor:
        optimise(
            start.tree, train, settings, executor, max_sweeps=SWEEP,
            assignment=start.assignment, progress=progress,
        )  # fmt: skip
    chosen = []
    for kind in ("router", "leaf"):
        cases = [case for case in seen if case.kind == kind]
        cases.sort(key=lambda case: case.problem.target.size)
        at = np.unique(np.linspace(0, len(cases) - 1, PER_KIND).astype(int))
        chosen += [cases[i] for i in at]
    return chosen


def _l1_like(penalty: Penalty) -> float:
    """Return an ℓ₁ term about as strong as an elastic net."""
    return max(penalty.l1, penalty.ridge / 10.0)


def compare(case: Case) -> tuple[float, float, float, float, float]:
    """Return seconds of the peer and of ours, cold and warm, and both objectives."""
    peer = _peers.liblinear if case.kind == "router" else _peers.saga
    ours = solve_logistic if case.kind == "router" else solve_softmax
    reference = peer(case.problem)
    with Stopwatch() as watch:
        peer(case.problem)
    seconds = watch.seconds if watch.seconds > 1.0 else best_of(3, lambda: peer(case.problem))
    goal = _peers.objective(case.problem, reference.weights, reference.bias)
    for tol in 10.0 ** -np.arange(1, 7.5, 0.5):
        precision = Precision(tol, 100)
        solution = ours(case.problem, None, precision)
        value = _peers.objective(case.problem, solution.weights, solution.bias)
        if value <= goal * (1 + 1e-5):
            break
    cold = best_of(3, lambda: ours(case.problem, None, precision))
    warm = best_of(3, lambda: ours(case.problem, case.warm, precision))
    return seconds, cold, warm, goal, value


def main() -> None:
    """Compare on every available set."""
    options = arguments(__doc__).parse_args()
    rows, total_peer, total_ours, slower, missed = [], 0.0, 0.0, 0, 0
    for name in SETS:
        if not available(options.data, name):
            continue
        with executor_for(1):
            for case in problems_of(name, load(options.data, name)):
                peer, cold, warm, goal, value = compare(case)
                total_peer += peer
                total_ours += cold
                slower += cold > peer
                missed += value > goal * (1 + 1e-5)
                shape = f"{case.problem.target.size:,} rows, k={case.problem.n_targets}"
                rows.append(
                    [name, case.kind, shape, 1e3 * peer, 1e3 * cold, 1e3 * warm, peer / cold,
                     f"{goal:.6g}", f"{value:.6g}"]
                )  # fmt: skip
    write(
        "solvers",
        "Node solvers to the same objective",
        "Routers: LIBLINEAR, tol 1e-4, 100 iterations at the most. Leaves: SAGA, the same. Ours: "
        "the loosest tolerance of 10⁻¹, 10⁻¹·⁵, 10⁻², … whose objective is not above the peer's "
        "by more than one part in 10⁵; cold from zero, warm from the node's parameters of the "
        "sweep before. Router problems have the sweep's care sets and weights, but an ℓ₁ penalty "
        "only, because LIBLINEAR has no elastic net; it penalises the bias, scaled to matter "
        "little.",
        table(
            ["set", "node", "problem", "peer ms", "ours ms", "ours warm ms", "times faster",
             "peer's objective", "ours"],
            rows,
        ),
        f"In total {total_peer:.2f} s against {total_ours:.2f} s cold: "
        f"**{total_peer / total_ours:.1f} times** faster; "
        f"slower on {slower} of {len(rows)} problems; objective not reached on {missed}.",
    )  # fmt: skip


if __name__ == "__main__":
    main()
