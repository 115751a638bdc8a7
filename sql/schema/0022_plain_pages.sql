-- Pages get no checksums from here on, which older releases would take for damage: by the number of this migration they
-- refuse the file instead. The table told those releases which log belonged to a file.
DROP TABLE IF EXISTS log_stamp;
