1 berth save --output x.tar nothing; status=$?; ls; exit $status
