1 berth inspect --type image nothing
