125 berth tag a b c
