0 berth policy --help
