"""Mining: hard negatives from the answers of an earlier model, filtered, and the reasons where there are none."""
