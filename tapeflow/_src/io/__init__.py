"""Files and what is in them: whole files, records, images and audio, messages, examples, event files of TensorBoard."""

import tapeflow._src.io.codecs.audio_files
import tapeflow._src.io.codecs.image_files
import tapeflow._src.io.csv
import tapeflow._src.io.dlpack
import tapeflow._src.io.examples.example_parsing
import tapeflow._src.io.examples.features
import tapeflow._src.io.examples.sequence_parsing
import tapeflow._src.io.files
import tapeflow._src.io.gfile
import tapeflow._src.io.protos.tensor_protos
import tapeflow._src.io.records
import tapeflow._src.io.serialization
import tapeflow._src.io.tensorboard.event_files
import tapeflow._src.io.tensorboard.summary
