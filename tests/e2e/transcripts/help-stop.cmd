0 berth stop --help
