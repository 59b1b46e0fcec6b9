1 berth scan nothing
