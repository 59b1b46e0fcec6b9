0 berth node setup --help
