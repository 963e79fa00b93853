"""`python -m trainer.serve`: what the endpoint runs."""

from trainer_kit.server import serve

from trainer.boosting import ScikitLearn

if __name__ == "__main__":
    serve(ScikitLearn())
