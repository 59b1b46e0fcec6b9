0 berth volume rm --help
