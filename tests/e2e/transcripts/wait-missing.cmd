1 berth wait nothing
