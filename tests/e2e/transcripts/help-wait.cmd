0 berth wait --help
