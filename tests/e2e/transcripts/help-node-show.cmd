0 berth node show --help
