1 berth stop nothing
