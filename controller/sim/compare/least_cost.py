#!/usr/bin/env python3
"""Cost and time of `ecsched-dp`'s flow beside OR-tools' minimum-cost flow, on the same instances.

    pip install ortools==9.15.6755
    least_cost.py --edgeloom target/release/edgeloom [--machines 5000] [--containers 300] [--seeds 20]

Every instance is dumped with all its arcs. Times are totals: ours from the vectors to the solution, costs included; OR-tools'
from arrays of arcs, whose costs it is given, to the solution. Both use one processor and run one after the other.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time

import numpy
import ortools
from ortools.graph.python import min_cost_flow


def solve(dump):
    """Least cost, and the milliseconds that building and solving took."""
    arcs = numpy.array(dump["arcs"], dtype=numpy.int64).reshape(-1, 3)
    rows, columns = dump["containers"], dump["machines"]
    source, sink = rows + columns, rows + columns + 1
    row, column = numpy.arange(rows), rows + numpy.arange(columns)
    parts = (
        (numpy.full(rows, source), row, 0),
        (arcs[:, 0], rows + arcs[:, 1], arcs[:, 2]),
        (column, numpy.full(columns, sink), 0),
        (row, numpy.full(rows, sink), dump["unscheduled_cost"]),
    )
    tails = numpy.concatenate([tail for tail, _, _ in parts])
    heads = numpy.concatenate([head for _, head, _ in parts])
    costs = numpy.concatenate([numpy.broadcast_to(cost, len(tail)) for tail, _, cost in parts])
    started = time.perf_counter()
    flow = min_cost_flow.SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(tails, heads, numpy.ones(len(tails), dtype=numpy.int64), costs)
    flow.set_nodes_supplies([source, sink], [rows, -rows])
    status = flow.solve()
    took = time.perf_counter() - started
    if status != flow.OPTIMAL:
        raise SystemExit(f"OR-tools found no optimum: {status}")
    return flow.optimal_cost(), took * 1e3


def instance(arguments, seed):
    """Of one seed, read back from its dump."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [arguments.edgeloom, "sim", "batch", "--mix", "ec2", "--affinity", "0", "--dump", file.name]
        command += ["--machines", str(arguments.machines), "--containers", str(arguments.containers)]
        command += ["--profiles", "ecsched-dp", "--seed-base", str(seed)]
        subprocess.run(command, check=True)
        return json.load(file)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--edgeloom", default="edgeloom")
    arguments.add_argument("--machines", type=int, default=5000)
    arguments.add_argument("--containers", type=int, default=300)
    arguments.add_argument("--seeds", type=int, default=20)
    arguments = arguments.parse_args()
    print(f"{arguments.containers} containers on {arguments.machines} machines; OR-tools {ortools.__version__}")
    ours, theirs, equal = [], [], 0
    for seed in range(1, arguments.seeds + 1):
        dump = instance(arguments, seed)
        cost, took = solve(dump)
        ours.append(dump["build_ms"] + dump["solve_ms"])
        theirs.append(took)
        equal += cost == dump["optimum"]
        print(f"seed {seed}: {dump['optimum']} in {ours[-1]:.1f} ms, OR-tools {cost} in {took:.1f} ms", flush=True)
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"equal cost on {equal} of {arguments.seeds}; median {mine:.1f} ms against {other:.1f} ms: {other / mine:.1f} times")
    raise SystemExit(equal != arguments.seeds)


if __name__ == "__main__":
    main()
