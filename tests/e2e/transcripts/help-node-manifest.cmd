0 berth node manifest --help
