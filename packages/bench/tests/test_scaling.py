"""The plan on paper: its tables are what the code gives, and the simulation plays by the exporter's rules."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest

from bench import scaling, scaling_plan
from bench.scaling_simulation import Machine, Misfortune, assign, make_workload, simulate

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scaling.md"
MACHINE = Machine(rows_per_s=100_000, unit_s=0.1, start_s=60)
WORKLOAD = make_workload("test", rows=10_000_000, spans=60, validation_percent=10, rows_per_shard=100_000, spread=1.0)


class TestPage:
    """packages/bench/docs/scaling.md."""

    def test_tables_are_what_the_code_gives(self):
        """`make scaling-tables` would change nothing."""
        page = PAGE.read_text(encoding="utf-8")
        assert scaling.with_tables(page) == page

    def test_every_table_is_on_the_page_once(self):
        """None is forgotten, none is invented."""
        found = re.findall(r"<!-- table: ([a-z-]+) -->", PAGE.read_text(encoding="utf-8"))
        assert sorted(found) == sorted(scaling.TABLES)

    def test_rates_say_when_where_and_how(self):
        """A number without its machine is none."""
        rates = scaling_plan.load_rates()
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", rates["measured"])
        assert rates["command"] == "make bench-rates"
        assert rates["machine"]["cpu"]


class TestAssignment:
    """unit i belongs to replica i mod N."""

    @pytest.mark.parametrize("sorting", ["spans", "largest first"])
    @pytest.mark.parametrize("replicas", [1, 2, 7])
    def test_every_unit_belongs_to_one_replica(self, sorting, replicas):
        """None twice, none not at all."""
        shares = assign(WORKLOAD.units, replicas, sorting)
        assert sorted(unit for share in shares for unit in share) == list(range(len(WORKLOAD.units)))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1

    def test_workload_has_all_rows_in_shards_of_the_size(self):
        """Whatever the spread."""
        assert WORKLOAD.rows == pytest.approx(10_000_000, rel=1e-3)
        assert max(WORKLOAD.units) <= 100_000

    def test_largest_first_deals_alternating_parts_out_evenly(self):
        """By span, one of two replicas would get every train shard."""
        even = make_workload("even", rows=5_000_000, spans=50, validation_percent=10, rows_per_shard=10**6)
        by_span, by_size = (
            simulate(even, 2, dataclasses.replace(MACHINE, start_s=0), sorting=sorting).ratio
            for sorting in ("spans", "largest first")
        )
        assert by_span > 1.6
        assert by_size < 1.02


class TestSimulation:
    """What befalls the replicas."""

    @pytest.mark.parametrize("replicas", [1, 3, 16])
    def test_without_misfortune_it_is_near_the_ideal(self, replicas):
        """Small units, dealt out largest first."""
        outcome = simulate(WORKLOAD, replicas, MACHINE)
        assert 1.0 <= outcome.ratio < 1.1 + 30 / outcome.ideal_s  # the chief looks every 30 s at most
        assert (outcome.by_chief, outcome.written_twice) == (0, 0)

    def test_the_same_seed_gives_the_same(self):
        """And another one another fate."""
        fate = Misfortune(lost=2, preemptions_per_hour=5)
        first, second, other = (simulate(WORKLOAD, 8, MACHINE, misfortune=fate, seed=seed) for seed in (1, 1, 2))
        assert first == second
        assert first != other

    def test_the_chief_finishes_what_lost_replicas_leave(self):
        """After its patience, not before; all is written in the end."""
        patient = simulate(WORKLOAD, 8, MACHINE, misfortune=Misfortune(lost=2, patience_s=600))
        hasty = simulate(WORKLOAD, 8, MACHINE, misfortune=Misfortune(lost=2, patience_s=60))
        assert patient.by_chief == hasty.by_chief > 0
        assert patient.written_twice == 0
        assert patient.makespan_s > simulate(WORKLOAD, 8, MACHINE).makespan_s + 600
        assert 400 < patient.makespan_s - hasty.makespan_s < 700
        assert math.isfinite(patient.makespan_s)

    def test_a_single_replica_cannot_be_lost(self):
        """The chief's end is the job's: its retry is another simulation."""
        assert simulate(WORKLOAD, 1, MACHINE, misfortune=Misfortune(lost=3)) == simulate(WORKLOAD, 1, MACHINE)

    def test_a_preempted_replica_writes_only_one_unit_again(self):
        """Each preemption costs the restart, the start, and less than a unit."""
        fate = Misfortune(preemptions_per_hour=60, restart_s=10, patience_s=10_000)
        outcome, calm = simulate(WORKLOAD, 4, MACHINE, misfortune=fate), simulate(WORKLOAD, 4, MACHINE)
        assert outcome.makespan_s > calm.makespan_s + 70
        assert outcome.by_chief == 0

    def test_an_impatient_chief_writes_twice_and_loses_nothing(self):
        """A replica that is slow for longer than the patience comes back to find its units written."""
        fate = Misfortune(preemptions_per_hour=10, restart_s=900, patience_s=60)
        outcomes = [simulate(WORKLOAD, 4, MACHINE, misfortune=fate, seed=seed) for seed in range(10)]
        assert any(outcome.written_twice for outcome in outcomes)
        assert all(outcome.written_twice <= outcome.by_chief for outcome in outcomes)
        assert all(math.isfinite(outcome.makespan_s) for outcome in outcomes)


class TestPlan:
    """Time and cost."""

    @pytest.fixture
    def size(self):
        """1 billion flights."""
        return scaling_plan.flights_size(scaling_plan.load_rates())

    def test_more_replicas_take_less_time_and_no_less_money(self, size):
        """The start of each machine is paid for."""
        prices = scaling_plan.load_prices()
        plans = [scaling_plan.plan_export(size, replicas, "n1-standard-4", prices) for replicas in (1, 4, 16)]
        assert plans[0].hours > plans[1].hours > plans[2].hours
        assert plans[0].machine_usd <= plans[1].machine_usd <= plans[2].machine_usd

    def test_reading_bounds_what_cores_do_not(self, size):
        """Rows of a megabyte that cost nothing to encode come no faster than a session gives them."""
        wide = dataclasses.replace(size, table_bytes=1e6, rows_per_core_s=1e6)
        machine, limit = scaling_plan.replica(wide, "n1-standard-4")
        assert (machine.rows_per_s, limit) == (250, "read")

    def test_price_of_a_machine_is_that_of_its_parts(self):
        """vCPUs, memory, disk."""
        prices = scaling_plan.load_prices()
        expected = (4 * 0.031611 + 15 * 0.004237 + 100 * 0.17 / 730) * 1.15
        assert scaling_plan.hourly(prices, "n1-standard-4") == pytest.approx(expected)


def test_commands_print(capsys):
    """Both commands of the page."""
    assert scaling.main([]) == 0
    assert "## misfortune" in capsys.readouterr().out
    assert scaling.main(["simulate", "--replicas", "2", "4", "--lost", "1", "--rows", "1000000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "by the chief" in lines[1]
