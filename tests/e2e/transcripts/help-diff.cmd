0 berth diff --help
