"""`retraining trial`: what is supposed of the real services is asked of them, at the least price."""
