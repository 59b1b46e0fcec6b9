0 berth run --help
