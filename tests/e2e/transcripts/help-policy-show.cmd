0 berth policy show --help
