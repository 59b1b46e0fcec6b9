0 berth ps -a --format json
