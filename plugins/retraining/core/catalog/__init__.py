"""What there is, by dated data files: architectures, machines, prices; and whether a spec keeps to it."""
