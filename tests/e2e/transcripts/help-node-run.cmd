0 berth node run --help
