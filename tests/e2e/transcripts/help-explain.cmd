0 berth explain --help
