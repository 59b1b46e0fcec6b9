1 berth import nowhere name
