"""The bundle brought to the bucket of a Composer environment: `make deploy`."""
