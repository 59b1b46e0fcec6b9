125 berth run --volume only-one debian
