0 berth completion --help
