0 berth version --help
