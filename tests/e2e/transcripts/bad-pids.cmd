125 berth run --pids-limit many debian
