0 berth gpu list --help
