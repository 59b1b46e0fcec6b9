1 berth tag a b c
