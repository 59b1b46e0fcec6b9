1 berth login
