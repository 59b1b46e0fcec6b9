0 berth node status --help
