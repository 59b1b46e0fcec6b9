0 berth load --help
