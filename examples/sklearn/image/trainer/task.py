"""`python -m trainer.task {train,score} --request=gs://…`."""

import sys

from trainer_kit.job import main

from trainer.boosting import ScikitLearn

if __name__ == "__main__":
    sys.exit(main(ScikitLearn()))
