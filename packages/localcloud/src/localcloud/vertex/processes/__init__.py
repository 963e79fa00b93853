"""Programs on this machine: which environment stands for an image, what is run in it, and where its lines go."""
