1 berth tag nothing other
