"""`python -m trainer.task {train,score} --request=gs://…`."""

import sys

from trainer_kit.job import main

from trainer.boosting import XGBoost

if __name__ == "__main__":
    sys.exit(main(XGBoost()))
