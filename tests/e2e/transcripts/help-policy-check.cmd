0 berth policy check --help
