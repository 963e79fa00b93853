"""`python -m retraining`: every program of the plugins, a command each."""

import sys
from collections.abc import Sequence

from retraining.commands import (
    check,
    doctor,
    init,
    new_model,
    orders,
    policy_replay,
    preview,
    promote,
    quotas,
    reasons,
    runs,
    score,
    spending,
    stages,
    upgrade,
)
from retraining.commands.program import OpenGroup
from retraining.commands.shell import Shell, run_program
from retraining.commands.trial import command as trial_command

PROGRAM = OpenGroup(
    "retraining",
    help="Models and their runs, by the settings (RETRAINING_*) and this machine's own credentials.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
    commands=[
        runs.list_models,
        runs.list_runs,
        runs.explain_model,
        score.show_score,
        runs.compare_runs,
        runs.replay_run,
        orders.order_run,
        promote.promote_version,
        orders.send_trial_message,
        policy_replay.replay_policy,
        init.init_repository,
        check.check_models,
        check.check_queries,
        doctor.diagnose,
        trial_command.try_services,
        new_model.new_model,
        preview.preview_run,
        reasons.show_reasons,
        spending.show_spending,
        upgrade.check_upgrade,
        quotas.show_quotas,
        stages.show_differences,
    ],
)


def main(arguments: Sequence[str] | None = None, shell: Shell | None = None) -> int:
    """Run one command; return its exit status."""
    return run_program(PROGRAM, arguments, shell or Shell())


def run() -> None:
    """Run one command and end the process, as the installed program `retraining`."""
    sys.exit(main())


if __name__ == "__main__":
    run()
