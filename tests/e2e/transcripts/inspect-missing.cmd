1 berth inspect nothing
