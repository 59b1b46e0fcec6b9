125 berth run --name a/b debian
