0 berth save --help
