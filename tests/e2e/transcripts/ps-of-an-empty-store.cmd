0 berth ps -a
